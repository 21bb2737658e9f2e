from . import analyses_layouts as analyses_layouts
from . import cpu as cpu
from . import cuda as cuda
from . import gapsmis_layouts as gapsmis_layouts
