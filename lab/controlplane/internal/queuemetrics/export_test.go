package queuemetrics

// Disabled reports whether new queues have no metrics.
func Disabled() bool { return provider == none }
