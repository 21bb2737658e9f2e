"""``python -m engine.command_line``."""

import sys

from engine.command_line.main import main

sys.exit(main(sys.argv[1:]))
