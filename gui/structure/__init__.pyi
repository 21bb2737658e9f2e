from . import drawn_renderer as drawn_renderer
from . import opengl_renderer as opengl_renderer
from . import structure_panel as structure_panel
