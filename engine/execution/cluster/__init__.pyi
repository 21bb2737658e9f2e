from . import certificates as certificates
from . import launchers as launchers
from . import option as option
from . import serving as serving
