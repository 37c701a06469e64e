"""What the command line does, one file a command.  Each is a function that takes values and prints; ``cli.py`` wires them."""
