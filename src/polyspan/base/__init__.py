"""What every other part uses: arrays, checks, files, progress, and names of scikit-learn."""
