from . import running as running
from . import table as table
