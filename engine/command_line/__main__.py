"""``python -m engine.command_line``."""

import sys

from engine.command_line.main import main

sys.exit(main())
