"""What a work will take before it is done: the ATGPU model, calibrated on each device."""
