"""Training with parameter servers: workers pull weights, push gradients, and need not wait for each other."""
