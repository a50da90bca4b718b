"""Real clusters of processes: TF_CONFIG, a launcher, a doctor, and what TensorFlow's messages mean."""
