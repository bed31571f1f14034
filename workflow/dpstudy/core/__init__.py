"""Infrastructure for all other packages: errors, files, arrays, devices and jobs; it imports none of them."""
