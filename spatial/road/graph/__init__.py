"""A road network in kernels: checked, joined into roads, divided into cells, with places on edges."""
