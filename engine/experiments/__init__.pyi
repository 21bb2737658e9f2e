from . import estimating as estimating
from . import rows as rows
from . import running as running
from . import sdrf as sdrf
from . import table as table
