package fake

import (
	"context"
	"fmt"
)

// Operation is a host operation that a process is about to start.
type Operation struct {
	Process   *Process
	Interface string // as in host.Host: "Files"
	Method    string // "Write"
	Target    string // path, service, rule, ...; empty for operations without one
}

// String returns the operation in the form "Files.Write C:\k\config".
func (o Operation) String() string {
	if o.Target == "" {
		return o.Interface + "." + o.Method
	}
	return o.Interface + "." + o.Method + " " + o.Target
}

// runOperation runs one operation of the process under the machine's lock if the process is alive and no hook returns
// an error.
func (p *Process) runOperation(ctx context.Context, in, method, target string, action func(*Machine) error) error {
	if err := p.admitOperation(ctx, Operation{Process: p, Interface: in, Method: method, Target: target}); err != nil {
		return err
	}
	return p.runLocked(action)
}

// runLocked runs an action of the process under the machine's lock.
func (p *Process) runLocked(action func(*Machine) error) error {
	p.Machine.lock()
	defer p.Machine.unlock()
	if err := p.checkAlive(); err != nil {
		return err
	}
	return action(p.Machine)
}

// admitOperation checks whether an operation may start. The hooks are external code and run without the machine's lock.
func (p *Process) admitOperation(ctx context.Context, operation Operation) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	var hooks []func(Operation) error
	if err := p.runLocked(func(m *Machine) error { hooks = m.faults.operationHooks(); return nil }); err != nil {
		return err
	}
	for _, hook := range hooks {
		if err := hook(operation); err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
	}
	return nil
}

// processContext returns a context that also ends with the process, for operations that wait.
func (p *Process) processContext(ctx context.Context) (context.Context, context.CancelFunc) {
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
