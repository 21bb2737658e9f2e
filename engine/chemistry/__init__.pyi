from . import fragments as fragments
from . import masses as masses
from . import tolerance as tolerance
