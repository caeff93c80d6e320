"""Where rows come from, what is known about them, and the coordinates that are worked in."""
