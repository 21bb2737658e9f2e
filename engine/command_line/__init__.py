"""The command line of the program."""
