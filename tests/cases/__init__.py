"""Problems that people had with recorders of networks, each as a small model with facts to check."""
