from . import tolerance as tolerance
