"""The paper's tables and figures: one file each, a registry, and a runner that can resume."""
