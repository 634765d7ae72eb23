package hosttest

import (
	"reflect"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Behavior is one guarantee of the contract.
type Behavior struct {
	Operation string // the tested method: "Files.Write"
	Sentence  string // the guaranteed behavior
	check     func(*suite)
}

// ID returns the identifier of the behavior.
func (b Behavior) ID() string { return b.Operation + ": " + b.Sentence }

// Operations returns all methods of all interfaces of host.Host, as "Files.Write", in the order of host.Host.
func Operations() []string {
	var names []string
	for field := range reflect.TypeFor[host.Host]().Fields() {
		var methods []string
		for method := range field.Type.Methods() {
			methods = append(methods, field.Name+"."+method.Name)
		}
		slices.Sort(methods)
		names = append(names, methods...)
	}
	return names
}
