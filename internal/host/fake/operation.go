package fake

import (
	"context"
	"fmt"
)

// Operation is a host operation that a process is about to do.
type Operation struct {
	Process   *Process
	Interface string // as in host.Host: "Files"
	Method    string // "Write"
	Target    string // path, service, rule, ...; empty for operations without one
}

// String returns the operation as in "Files.Write C:\k\config".
func (o Operation) String() string {
	if o.Target == "" {
		return o.Interface + "." + o.Method
	}
	return o.Interface + "." + o.Method + " " + o.Target
}

// do does one operation of the process under the machine's lock, if the process lives and no hook objects.
func (p *Process) do(ctx context.Context, in, method, target string, action func(*Machine) error) error {
	if err := p.admit(ctx, Operation{Process: p, Interface: in, Method: method, Target: target}); err != nil {
		return err
	}
	return p.locked(action)
}

// locked does something in the name of the process under the machine's lock.
func (p *Process) locked(action func(*Machine) error) error {
	p.Machine.lock()
	defer p.Machine.unlock()
	if err := p.check(); err != nil {
		return err
	}
	return action(p.Machine)
}

// admit asks whether an operation may begin. The hooks are foreign code and run without the machine's lock.
func (p *Process) admit(ctx context.Context, operation Operation) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	var hooks []func(Operation) error
	if err := p.locked(func(m *Machine) error { hooks = m.faults.operationHooks(); return nil }); err != nil {
		return err
	}
	for _, hook := range hooks {
		if err := hook(operation); err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
	}
	return nil
}

// lasting is ctx until the process ends, for operations that wait.
func (p *Process) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.done:
			cancel(fmt.Errorf("process %d: %w", p.PID, ErrProcessEnded))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
