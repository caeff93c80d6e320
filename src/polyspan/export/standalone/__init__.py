"""Source text of exported files: functions that need NumPy alone.

`python_file` copies the functions of these modules into the exported file, after the constants of
its model. They call nothing of the rest of polyspan, and nothing that NumPy 1.23 does not have.
They repeat the operations of the library in the same order, so that labels are the same even where
two subspaces are equally near up to rounding.
"""
