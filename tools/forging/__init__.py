"""Parts of tools/forge.py: models, ways to forge their files, and what is called afterwards."""
