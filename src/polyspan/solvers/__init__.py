"""Pure loops: arrays and an explicit starting point in, one frozen result out."""
