package queuemetrics

// Disabled reports whether a queue that is made now has no metrics.
func Disabled() bool { return provider == none }
