// Package policy is the common part of all decisions of the operator: a chain of named checks, which reads as a
// specification, and its result. Each subject has a package of its own below this one. All are pure functions: they get
// facts and the time, read nothing, and change nothing.
package policy

// Decision is the result of a chain of checks.
type Decision struct {
	Allowed bool
	// Check is the name of the check that decided; empty when all passed.
	Check string
	// Reason is a condition's reason when it is not allowed.
	Reason string
	// Message says why in words for an administrator.
	Message string
	// Passes is true when what stands in the way goes within moments, by what others are about to do.
	Passes bool
}

// Check is one named rule, and the reason to give when it is broken.
type Check[T any] struct {
	Name, Reason string
	// Broken says in words how the rule is broken; it returns an empty message when the rule is kept.
	Broken func(T) string
}

// Decide runs the checks in order until one is broken. allowed is the message when none is.
func Decide[T any](subject T, allowed string, checks []Check[T]) Decision {
	for _, c := range checks {
		if message := c.Broken(subject); message != "" {
			return Decision{Check: c.Name, Reason: c.Reason, Message: message}
		}
	}
	return Decision{Allowed: true, Message: allowed}
}
