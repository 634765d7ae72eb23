//go:build windows

package windows

import (
	"errors"
	"fmt"

	"github.com/go-ole/go-ole"
)

// Windows Management Instrumentation (WMI) is called through its scripting objects (IDispatch, by name, in the
// multithreaded apartment), which need no tables of native functions:
//
//	CoCreateInstance {76A64158-CB41-11D1-8B02-00600806D9B6} (WbemScripting.SWbemLocator)
//	  ConnectServer(".", namespace): SWbemServices
//	    InstancesOf(class): SWbemObjectSet of objects with the class's properties
//	    Get(class).Methods_.Item(method).InParameters.SpawnInstance_: object with the parameters as properties
//	    ExecMethod(class, method, parameters): object with ReturnValue

// connectWMI connects to a WMI namespace on this machine. The caller must release it.
func connectWMI(namespace string) (*ole.IDispatch, error) {
	locator, err := createObject("{76A64158-CB41-11D1-8B02-00600806D9B6}")
	if err != nil {
		return nil, fmt.Errorf("open WMI (the Windows service Winmgmt must be running): %w", err)
	}
	defer locator.Release()
	service, err := callObject(locator, "ConnectServer", ".", namespace)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", namespace, err)
	}
	return service, nil
}

// callClass calls a method of a WMI class with one parameter. It also returns 0 for a method without a return value.
func callClass(service *ole.IDispatch, class, method, parameter string, value any) (returned uint32, err error) {
	in, err := methodParameters(service, class, method)
	if err != nil {
		return 0, err
	}
	defer in.Release()
	if _, err := in.PutProperty(parameter, value); err != nil {
		return 0, fmt.Errorf("set parameter %s: %w", parameter, wmiError(err))
	}
	result, err := service.CallMethod("ExecMethod", class, method, in)
	if err != nil {
		return 0, fmt.Errorf("ExecMethod: %w", wmiError(err))
	}
	out := result.ToIDispatch()
	if out == nil {
		return 0, nil
	}
	defer out.Release()
	r := propertyReader{object: out}
	return uint32(r.readInt("ReturnValue")), nil // 0 for a method without a return value
}

// methodParameters returns an empty set of parameters for a method of the class. The caller must release it.
func methodParameters(service *ole.IDispatch, class, method string) (*ole.IDispatch, error) {
	object, held := service, []*ole.IDispatch{}
	defer func() {
		for _, each := range held {
			each.Release()
		}
	}()
	for _, step := range []struct {
		name      string
		arguments []any
		property  bool
	}{
		{name: "Get", arguments: []any{class}},
		{name: "Methods_", property: true},
		{name: "Item", arguments: []any{method}},
		{name: "InParameters", property: true},
	} {
		invoke := callObject
		if step.property {
			invoke = readObject
		}
		next, err := invoke(object, step.name, step.arguments...)
		if err != nil {
			return nil, fmt.Errorf("query the method: %w", err)
		}
		object, held = next, append(held, next)
	}
	return callObject(object, "SpawnInstance_")
}

// stringsIn returns the strings of an array property, or nil for NULL. Any other value is an error, because it must
// not be read as an empty list.
func stringsIn(object *ole.IDispatch, property string) ([]string, error) {
	value, err := object.GetProperty(property)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", property, wmiError(err))
	}
	defer value.Clear() //nolint:errcheck // only memory
	switch {
	case value.VT == ole.VT_NULL || value.VT == ole.VT_EMPTY:
		return nil, nil
	case value.VT&ole.VT_ARRAY == 0:
		return nil, fmt.Errorf("read %s: a value of type %d instead of an array", property, value.VT)
	}
	var texts []string
	for i, element := range value.ToArray().ToValueArray() {
		text, ok := element.(string)
		if !ok {
			return nil, fmt.Errorf("read %s: element %d is not a string", property, i)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// callObject calls a method that returns an object. The caller must release the object.
func callObject(object *ole.IDispatch, method string, arguments ...any) (*ole.IDispatch, error) {
	value, err := object.CallMethod(method, arguments...)
	return objectIn(value, method, err)
}

// readObject reads a property that contains an object. The caller must release the object.
func readObject(object *ole.IDispatch, property string, _ ...any) (*ole.IDispatch, error) {
	value, err := object.GetProperty(property)
	return objectIn(value, property, err)
}

func objectIn(value *ole.VARIANT, name string, err error) (*ole.IDispatch, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, wmiError(err))
	}
	if object := value.ToIDispatch(); object != nil {
		return object, nil
	}
	return nil, fmt.Errorf("%s returned a value of type %d instead of an object", name, value.VT)
}

// wmiError adds the code and the host error to a WMI error.
func wmiError(err error) error {
	var failure *ole.OleError
	if !errors.As(err, &failure) {
		return err
	}
	return meaningOf(comError(err), codeOf(failure))
}

func meaningOf(err error, code uint32) error {
	if means := wmiMeaning(code); means != nil {
		return classifiedError{err, means}
	}
	return err
}

// codeOf returns the code of a method's own failure, which is nested in "exception occurred".
func codeOf(failure *ole.OleError) uint32 {
	var inside ole.EXCEPINFO
	if errors.As(failure.SubError(), &inside) && inside.SCODE() != 0 {
		return inside.SCODE()
	}
	return uint32(failure.Code())
}
