"""The parts of the soak: see ../README.md."""
