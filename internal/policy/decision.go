// Package policy holds the operator's decisions as pure functions: may this entry be used, is this host supported, may this instance have
// this node name, may this certificate be issued. Each decision is a chain of named checks that reads as a specification.
package policy

// Decision is what a chain of checks came to.
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

// check is one named rule. It returns an empty message when the rule is kept.
type check[T any] struct {
	name, reason string
	broken       func(T) string
}

// decide runs the checks in order until one is broken.
func decide[T any](subject T, allowed string, checks []check[T]) Decision {
	for _, c := range checks {
		if message := c.broken(subject); message != "" {
			return Decision{Check: c.name, Reason: c.reason, Message: message}
		}
	}
	return Decision{Allowed: true, Message: allowed}
}
