"""What the build of the documentation needs beyond Sphinx."""
