"""What every other package stands on: errors, files, arrays, devices and jobs; it imports none of them."""
