"""Pure solvers of the kernel models: kernel values in, members and coefficients out."""
