package fake

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// variables are environment variables by key; names are case-insensitive.
type variables map[string]variable

type variable struct{ name, value string }

// newEnvironment returns the machine-wide environment of a fresh Windows Server.
func newEnvironment() variables {
	v := variables{}
	for name, value := range map[string]string{
		"ComSpec":                `C:\Windows\system32\cmd.exe`,
		"DriverData":             `C:\Windows\System32\Drivers\DriverData`,
		"NUMBER_OF_PROCESSORS":   "4",
		"OS":                     "Windows_NT",
		"Path":                   `C:\Windows\system32;C:\Windows;C:\Windows\System32\Wbem;C:\Windows\System32\WindowsPowerShell\v1.0\;C:\Windows\System32\OpenSSH\`,
		"PATHEXT":                ".COM;.EXE;.BAT;.CMD;.VBS;.VBE;.JS;.JSE;.WSF;.WSH;.MSC",
		"PROCESSOR_ARCHITECTURE": "AMD64",
		"PSModulePath":           `C:\Program Files\WindowsPowerShell\Modules;C:\Windows\system32\WindowsPowerShell\v1.0\Modules`,
		"TEMP":                   `C:\Windows\TEMP`,
		"TMP":                    `C:\Windows\TEMP`,
		"USERNAME":               "SYSTEM",
		"windir":                 `C:\Windows`,
	} {
		v.setVariable(name, value)
	}
	return v
}

func (v variables) setVariable(name, value string) {
	if known, ok := v[foldCase(name)]; ok {
		name = known.name
	}
	v[foldCase(name)] = variable{name, value}
}

func (v variables) copyVariables() variables { return maps.Clone(v) }

func (v variables) valuesByName() map[string]string {
	values := make(map[string]string, len(v))
	for _, each := range v {
		values[each.name] = each.value
	}
	return values
}

// environment implements host.Environment for one process.
type environment struct{ p *Process }

func (e environment) Get(ctx context.Context) (values map[string]string, err error) {
	err = e.p.runOperation(ctx, "Environment", "Get", "", func(m *Machine) error { values = m.environment.valuesByName(); return nil })
	return values, err
}

func (e environment) Set(ctx context.Context, name, value string) error {
	return e.p.runOperation(ctx, "Environment", "Set", name, func(m *Machine) error {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("set environment variable %q: the name is not allowed", name)
		}
		m.environment.setVariable(name, value)
		e.p.recordEntry(KindEnvironment, "set "+name, 0)
		return nil
	})
}

func (e environment) Unset(ctx context.Context, name string) error {
	return e.p.runOperation(ctx, "Environment", "Unset", name, func(m *Machine) error {
		if _, ok := m.environment[foldCase(name)]; ok {
			delete(m.environment, foldCase(name))
			e.p.recordEntry(KindEnvironment, "unset "+name, 0)
		}
		return nil
	})
}

// serviceEnvironment returns the environment of a service process: the machine's environment at boot, overridden by
// the service's own.
func (m *Machine) serviceEnvironment(config host.ServiceConfig) map[string]string {
	merged := m.bootEnvironment.copyVariables()
	for _, entry := range config.Environment {
		name, value, _ := strings.Cut(entry, "=")
		merged.setVariable(name, value)
	}
	return merged.valuesByName()
}
