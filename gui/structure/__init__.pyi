from . import structure_panel as structure_panel
