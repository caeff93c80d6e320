"""Pure solvers of the linear models: arrays in, arrays out; nothing here knows an estimator."""
