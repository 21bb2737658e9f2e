from . import analyses as analyses
from . import calibration as calibration
from . import kept as kept
