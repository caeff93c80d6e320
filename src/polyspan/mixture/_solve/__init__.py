"""Pure solvers of the mixtures: arrays in, arrays out; nothing here knows an estimator."""
