// Package policy is the common part of all decisions of the operator: a chain of named checks, which reads as a
// specification, and its result. Each subject has its own package below this one. All decisions are pure functions of
// facts and the time: they read nothing, and change nothing.
package policy

// Decision is the result of a chain of checks.
type Decision struct {
	Allowed bool
	// Check is the name of the failed check; empty if all checks passed.
	Check string
	// Reason is a condition's reason if the decision is not allowed.
	Reason string
	// Message is the explanation for an administrator.
	Message string
	// Transient is true if other clients are about to resolve the refusal within moments.
	Transient bool
}

// Check is one named rule, and the reason of its violation.
type Check[T any] struct {
	Name, Reason string
	// Violation returns a message about the violation, or "" if the rule is met.
	Violation func(T) string
}

// Decide runs the checks in order until one fails. allowed is the message if all checks pass.
func Decide[T any](subject T, allowed string, checks []Check[T]) Decision {
	for _, c := range checks {
		if message := c.Violation(subject); message != "" {
			return Decision{Check: c.Name, Reason: c.Reason, Message: message}
		}
	}
	return Decision{Allowed: true, Message: allowed}
}
