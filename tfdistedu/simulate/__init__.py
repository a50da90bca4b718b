"""Training on machines that one does not have: real gradients, on a clock that is only counted."""
