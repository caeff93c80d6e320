"""The recorded cases, one in each line; the line is the case's name.

A case of FITS is a model, the name of the data that it is fitted to (or streams of), what else
`fit` takes, and after "new:" the data that it is asked about besides its own. A case of PICTURES
is a call and the picture without noise. A case of CALLS is an expression. Names are the public
ones of polyspan and those of data.py; a `random_state` that is not given is 0.
"""

FITS = """
MiCUSaL(3, 2) | rows | new: new_rows
MiCUSaL(3, 2, lam=float("inf")) | rows
MiCUSaL(3, 2, lam=20.0, solver="exact") | rows
MiCUSaL(3, 2, init="random", n_init=4) | rows
MiCUSaL(3, 2, init="random", n_init=2, solver="exact") | rows
MiCUSaL(3, 2, init=start) | rows
MiCUSaL(3, 2, center=False) | rows | new: new_rows
MiCUSaL(3, 2, affine=True) | far_rows
MiCUSaL(3, 2, affine=True, center=False, solver="exact") | far_rows
MiCUSaL(3, 0, affine=True) | far_rows
MiCUSaL(3, (1, 2, 3)) | rows | new: new_rows
MiCUSaL(3, (1, 2, 3), solver="exact", affine=True) | far_rows
MiCUSaL(3, 2, residual="loo") | rows
MiCUSaL(3, 2, residual="loo", affine=True) | rows
MiCUSaL(3, 2, trim=0.1) | outlying
MiCUSaL(3, 2, trim=0.1, center=False) | outlying | new: new_rows
MiCUSaL(3, 2, trim=0.1, center=False, affine=True) | outlying
MiCUSaL(3, 2, trim=0.1, center=False, init="random", n_init=2) | outlying
MiCUSaL(3, 2, anneal_steps=10, anneal_range=(0.3, 0.1), max_iter=3) | rows
MiCUSaL(3, 2, n_init=3, tol=1e-3) | rows
MiCUSaL(1, 3) | rows
MiCUSaL(12, 2) | rows
MiCUSaL(3, 2) | rows | sample_weight=weights
MiCUSaL(3, 2, solver="exact", affine=True) | rows | sample_weight=weights
MiCUSaL(3, (1, 2, 2), residual="loo") | rows | sample_weight=weights
MiCUSaL(3, 2, trim=0.1, center=False) | rows | sample_weight=weights
MiCUSaL(3, 2) | rows32
MiCUSaL(3, 2) | frame.fillna(0.0)
MiCUSaL(3, 2) | mapped_rows
MiCUSaL(3, 2, init="random", n_init=2) | chunked_rows
MiCUSaL(3, 2) | chunked_rows | sample_weight=weights
MiCUSaL(3, 2, affine=True) | chunked_rows
MiCUSaL(3, 2) | dask_rows
MiCUSaL(3, (1, 2, 3), affine=True, anneal_steps=10, max_iter=10) | dask_rows
MiCUSaL(3, 2, solver="exact") | dask_rows | sample_weight=dask_weights
MiCUSaL(3, 2) | batches | new: new_rows
MiCUSaL(3, 2, forget_factor=0.8, affine=True) | batches
MiCUSaL(3, (1, 2, 3)) | batches | sample_weight=weight_batches
RobustMiCUSaL(3, 2) | holes | new: new_holes
RobustMiCUSaL(3, 2) | rows
RobustMiCUSaL(3, 2, lam=float("inf")) | holes
RobustMiCUSaL(3, 2, solver="exact") | holes
RobustMiCUSaL(3, 2, solver="grouse", n_sweeps=10, max_iter=5) | holes | new: new_holes
RobustMiCUSaL(3, 2, init="random", n_init=3) | holes
RobustMiCUSaL(3, 2, init=start, fill_prior=0.0) | holes
RobustMiCUSaL(3, 2, center=True) | holes
RobustMiCUSaL(3, 2, center=True, affine=True) | holes
RobustMiCUSaL(3, (1, 2, 3)) | holes
RobustMiCUSaL(3, (1, 2, 3), affine=True, solver="exact", max_iter=50) | holes
RobustMiCUSaL(3, 2, residual="loo") | holes
RobustMiCUSaL(3, 2, residual="loo", affine=True) | rows
RobustMiCUSaL(3, 2, trim=0.1) | outlying_holes
RobustMiCUSaL(3, 2, trim=0.1, affine=True) | outlying_holes
RobustMiCUSaL(3, 2) | holes | sample_weight=weights
RobustMiCUSaL(3, 2, affine=True, residual="loo") | holes | sample_weight=weights
RobustMiCUSaL(3, 2) | holes32
RobustMiCUSaL(3, 2) | frame
RobustMiCUSaL(3, 2) | mapped_holes
RobustMiCUSaL(3, 2) | chunked_holes
RobustMiCUSaL(3, 2, affine=True) | chunked_holes | sample_weight=weights
RobustMiCUSaL(3, 2) | dask_holes
RobustMiCUSaL(2, (1, 2), center=True, max_iter=10) | dask_holes | sample_weight=dask_weights
RobustMiCUSaL(3, 2) | hole_batches | new: new_holes
RobustMiCUSaL(3, 2, forget_factor=0.7) | hole_batches | sample_weight=weight_batches
AdaptiveMiCUSaL(5, 3) | rows | new: new_rows
AdaptiveMiCUSaL(5, 3) | holes
AdaptiveMiCUSaL(5, 3, init="anneal", merge_threshold=0.3, k1=4, k2=8) | rows
AdaptiveMiCUSaL(4, 3, trim=0.1, center=False) | outlying
AdaptiveMiCUSaL(5, 3) | rows | sample_weight=weights
AdaptiveMiCUSaL(5, 3) | mapped_rows
MCKUSaL(3, 2) | rows | new: new_rows
MCKUSaL(3, 2, kernel="poly", degree=3, gamma=0.5) | rows
MCKUSaL(3, 2, kernel="linear", lam=20.0) | rows
MCKUSaL(3, 2, kernel="precomputed") | gram | new: new_gram
MCKUSaL(3, 2, kernel=inner) | rows
MCKUSaL(3, 2, init="gkiop", n_init=3) | rows
MCKUSaL(3, 2, init="gkiop", gkiop_seeds=[0, 1, 2]) | rows
MCKUSaL(3, 2, residual="loo") | rows
MCKUSaL(3, 2, preimage="fixed_point") | rows
MCKUSaL(3, 2, low_rank=20) | rows | new: new_rows
MCKUSaL(3, 2, low_rank=20) | rows | sample_weight=weights
MCKUSaL(3, 2, low_rank=20, residual="loo") | rows
MCKUSaL(3, 2, low_rank=20) | chunked_rows
MCKUSaL(3, 2, low_rank=20) | dask_rows
MCKUSaL(3, 2) | rows | sample_weight=weights
RobustMCKUSaL(3, 2) | holes | new: new_holes
RobustMCKUSaL(3, 2, kernel="poly", degree=3, gamma=0.5) | holes
RobustMCKUSaL(3, 2, kernel="linear", residual="loo", delta_min=1e-3) | holes
RobustMCKUSaL(3, 2, preimage="paper", init="gkiop") | holes
RobustMCKUSaL(3, 2) | holes | sample_weight=weights
SubspaceMixture(3, 2) | rows | new: new_rows
SubspaceMixture(3, 2) | holes | new: new_holes
SubspaceMixture(3, "auto") | rows
SubspaceMixture(3, "auto") | holes
SubspaceMixture(3, (1, 2, 3), closeness=5.0) | rows
SubspaceMixture(3, 2, closeness=0.0, affine=False, center=False) | holes
SubspaceMixture(3, 2, noise="shared") | rows
SubspaceMixture(3, 2, noise=0.01) | holes
SubspaceMixture(3, 2, outliers=True) | outlying | new: new_rows
SubspaceMixture(3, 2, outliers=0.1) | outlying_holes
SubspaceMixture(3, 2, n_init=2, anneal_steps=0, max_iter=5) | rows
SubspaceMixture(3, 2, init=truth, affine=False) | rows
SubspaceMixture(3, 2) | rows | sample_weight=weights
SubspaceMixture(3, 2, outliers=True) | holes | sample_weight=weights
SubspaceMixture(3, 2) | rough_rows | noise_groups=sensors
SubspaceMixture(3, 2, outliers=True) | outlying_holes | sample_weight=[1.0] * 48 + [2.0] * 48
SubspaceMixture(1, 0) | rows
SubspaceMixture(3, 2) | rows32
SubspaceMixture(3, 2) | frame
SubspaceOutlierDetector() | outlying | new: new_rows
SubspaceOutlierDetector(contamination=0.1, standardize=True) | outlying
SubspaceOutlierDetector(standardize=False) | outlying
SubspaceOutlierDetector() | outlying_holes
SubspaceClustering(3) | rows | new: new_rows
SubspaceClustering() | rows
SubspaceClustering(3, graphs="all") | rows
SubspaceClustering(3, graphs="sparse", close_subspaces=False) | rows
SubspaceClustering(max_clusters=6) | outlying
SubspaceClustering(3) | far_rows
SubspaceClustering(3, extra_members=["least_squares", "ensemble"]) | rows
SubspaceImputer() | numbers
SubspaceImputer() | table | new: new_table
SubspaceImputer(method="subspaces") | table | new: new_table
SubspaceImputer(method="subspaces") | numbers
SubspaceImputer(method="subspaces") | holes | new: new_holes
SubspaceImputer(2, 2, n_fits=1) | numbers
SubspaceImputer(2, 2, method="subspaces", add_indicator=True) | numbers
SubspaceImputer(feature_types={"age": "number"}, method="subspaces") | table
SubspaceImputer(missing_values=-1.0, method="subspaces") | np.nan_to_num(numbers, nan=-1.0)
GROUSE(2, n_sweeps=5) | holes | new: new_holes
GROUSE(2, n_sweeps=5, step_size=0.5, center=True) | holes
GROUSE(2) | hole_batches
KGROUSE(3, 2, n_sweeps=10, n_init=2) | holes | new: new_holes
KGROUSE(3, 2, n_sweeps=5, center=True) | holes
KSubspaces(3, 2) | rows | new: new_rows
KSubspaces(3, (1, 2, 2), affine=True, solver="exact") | rows | sample_weight=weights
KSubspaces(3, 2, init="random", n_init=2, residual="loo") | rows
KSubspaces(3, 2) | dask_rows
KSubspaces(3, 2, forget_factor=0.9) | batches
BlockSparseDictionary(3, 2, n_init=2) | rows | new: new_rows
BlockSparseDictionary(3, 2, n_init=1, n_blocks=2) | rows
ElasticNetSubspaceClustering(3, 2) | rows | new: new_rows
ElasticNetSubspaceClustering(3, 2, nonnegative=True, n_exemplars=20) | rows
EnsembleKSubspaces(3, 2, n_runs=40) | rows | new: new_rows
LeastSquaresSubspaceClustering(3, 2) | rows | new: new_rows
LeastSquaresSubspaceClustering(None, 2, q=None, normalize=False, assign_labels="cluster_qr") | rows
RobustShapeInteraction(3, 2) | rows | new: new_rows
RobustShapeInteraction(3, 2, ranks=[4, 6], q=10, center=True) | rows
RobustSparseSubspaceClustering(3, 2) | rows | new: new_rows
RobustSparseSubspaceClustering(3, 2, lam="two-step") | rows
SparseSubspaceClustering(3, 2) | rows | new: new_rows
SparseSubspaceClustering(3, 2, algorithm="omp", n_nonzero=4) | rows
SparseSubspaceClustering(3, 2, outliers=True) | outlying
SparseSubspaceClustering(3, 2, affine=True) | rows
ThresholdingSubspaceClustering(3, 2) | rows | new: new_rows
ThresholdingSubspaceClustering(None, 2, q=5) | rows
KernelKMeans(3) | rows | new: new_rows
KernelKMeans(3, kernel="poly", degree=2, n_init=2) | rows | sample_weight=weights
KernelKMeans(3, kernel="precomputed") | gram | new: new_gram
KernelPCADenoiser(3) | rows | new: new_rows
KernelPCADenoiser("noise", noise=[0.05], kernel="rbf", gamma=0.5) | rows
KernelPCADenoiser(3, preimage="fixed_point") | rows | sample_weight=weights
RobustKernelPCA(3) | holes | new: new_holes
RobustKernelPCA(3, kernel="poly", degree=3, preimage="paper") | holes
"""

PICTURES = """
denoise_image(noisy, 0.1) | clean
denoise_image(noisy) | clean
denoise_image(noisy, 0.1, "fast") | clean
denoise_image(noisy, 0.1, "best") | clean
denoise_image(noisy.astype("float32"), 0.1) | clean
denoise_image(noisy, np.full(noisy.shape, 0.1)) | clean
denoise_image(noisy, 0.1, model=patches) | clean
denoise_image(noisy, 0.1, model="own") | clean
denoise_image(noisy, 0.1, "fast", return_std=True)[0] | clean
denoise_image(noisy, 0.1, "fast", return_std=True)[1] | clean
denoise_image(levels) | clean
denoise_image(counts, noise="poisson") | clean_counts
denoise_image(counts, noise="poisson", gain=1.0, read_noise=0.0) | clean_counts
denoise_image(correlated, noise="correlated") | clean
denoise_image(colour, 0.1, channel_axis=-1) | clean_colour
denoise_image(colour, (0.1, 0.1, 0.1), "fast", channel_axis=-1) | clean_colour
denoise_image(bands, 0.1, channel_axis=-1) | clean_bands
denoise_image(volume, 0.1, stack_axis=0) | clean_volume
inpaint_image(spoilt, mask) | clean
inpaint_image(spoilt, mask, "fast") | clean
inpaint_image(spoilt, mask, "best") | clean
inpaint_image(spoilt, mask, model=patches) | clean
inpaint_image(spoilt_colour, mask, channel_axis=-1) | clean_colour
"""

CALLS = """
geometry.estimate_dimension(rows)
geometry.closeness(start[None])
geometry.orthonormalise(many[:3])
geometry.draw_bases((2, 5, 2), np.random.RandomState(1))
geometry.leading_eigen(gram, 0.1)
estimate_noise(noisy)
estimate_noise(colour, channel_axis=-1, per_channel=True)
fit_micusal(many, 2, 1)
fit_micusal(many, 2, 1, affine=True, init="random", n_init=2)
fit_micusal(many, 2, (1, 2), center=False, lam=20.0)
compare(rows, {"a": MiCUSaL(3, 2), "b": KSubspaces(3, 2)}, labels=truth, bases=true_bases).rows
compare(rows, [RobustMiCUSaL(3, 2), SubspaceMixture(3, 2)], X_clean=clean_rows).rows
pool_estimates([1.0, 1.2, 0.9], [0.1, 0.1, 0.2])
pool_estimates(np.arange(6.0).reshape(3, 2), np.ones((3, 2)), complete_df=20)
MiCUSaL(3, 2).fit_predict(rows)
MiCUSaL(3, 2).fit_transform(rows)
RobustMiCUSaL(3, 2).fit(holes).impute(new_holes)
RobustMCKUSaL(3, 2).fit(holes).impute(new_holes)
SubspaceMixture(3, 2).fit(holes).sample(20, random_state=0)
SubspaceMixture(3, 2).fit(rough_rows, noise_groups=sensors).for_noise_group("fine").predict(rows)
SubspaceMixture(3, 2, warm_start=True, max_iter=3).fit(rows).fit(rows).log_likelihood_history_
SubspaceImputer().fit(numbers).sample_imputations(numbers[:20], 2, random_state=0)
SubspaceImputer(method="subspaces").fit(table).sample_imputations(table, 2, random_state=0)
choose_size(rows, 4, 3, n_seeds=1)
choose_by_noise(MCKUSaL(3), rows, 0.05, {"subspace_dim": [1, 2]})
gaussian_bic(MiCUSaL(3, 2).fit(rows), rows)
hidden_entry_errors(true_bases, rows.mean(0), rows, 0.2, np.random.RandomState(0))
masked_entry_score(MiCUSaL(3, 2).fit(rows), new_rows)
metrics.average_subspace_distance(start, true_bases)
metrics.clustering_error(truth, MiCUSaL(3, 2).fit(rows).labels_)
metrics.estimate_dimension(rows)
metrics.pairwise_subspace_distances(start)
metrics.principal_angles(start[0], true_bases[0])
metrics.relative_reconstruction_error(clean_rows, rows)
metrics.subspace_distance(start[0], true_bases[0], metric="projection", normalize=True)
kernels.estimate_kernel(kernels.Kernel("rbf", gamma=0.5), holes)
kernels.estimate_kernel(kernels.Kernel("poly", gamma=0.5), holes, new_holes, fill=0.1)
kernels.estimate_feature_distances(kernels.Kernel("rbf", gamma=0.5), holes)
kernels.mend(kernels.estimate_kernel(kernels.Kernel("rbf", gamma=0.5), holes).values, 1e-6)
kernels.nearest_positive_definite(gram - 1.0, 0.1)
kernels.inner_product_deviation(10, 1.5, 6, 0.1)
kernels.squared_distance_deviation(2.0, 6, 0.1)
kernels.coherence(rows[0])
kernels.gaussian_kernel_bounds(0.5, 2.0, 20, 0.1)
kernels.polynomial_kernel_bounds(0.5, 3, 1.0)
make_union_of_subspaces((5, 6), n_features=7, subspace_dim=(1, 2), random_state=1)
mask_entries(clean, 0.3, pattern="block")
mask_entries(rows, 0.3)
extract_patches(noisy, (7, 5), step=3, cover=True)
assemble_patches(extract_patches(noisy, (4, 4)), noisy.shape, (4, 4))
"""
