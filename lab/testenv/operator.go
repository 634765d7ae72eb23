package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/controller/source/byoh"
	"github.com/windows-machine-config/wmco/internal/operator"
)

// Operator is an operator in this process.
type Operator struct {
	stop  context.CancelFunc
	wires *wires
	done  chan struct{}
	err   error
}

// RunOperator starts an operator with the rights of its ServiceAccount, after InstallOperator. adjust may change the
// configuration. The operator stops with the environment at the latest.
func (r *Environment) RunOperator(adjust ...func(*operator.Config)) (*Operator, error) {
	r.mu.Lock()
	config, namespace := r.operatorConfig, r.namespace
	r.mu.Unlock()
	if config == nil {
		return nil, errors.New("run the operator: it is not installed")
	}
	o := &Operator{wires: &wires{open: map[net.Conn]struct{}{}}, done: make(chan struct{})}
	api := rest.CopyConfig(config)
	api.Dial = o.wires.wrapDialer(new(net.Dialer).DialContext)
	c := operator.Config{
		RESTConfig: api, Namespace: namespace, Version: r.options.Version,
		PayloadDirectory: r.payloadDir,
		Dial:             o.wires.wrapDialer(r.network.DialContext), Clock: r.options.Clock,
		MetricsAddress: "0", ProbeAddress: "0", Logger: r.options.Log, SkipNameValidation: true,
		// Most tests that remove hosts from the list do not depend on the delay. Zero means the operator's default.
		RemovalDelays: byoh.RemovalDelays{Absence: 1, Removal: 1},
	}
	if network, ok := r.network.(interface {
		LookupHost(ctx context.Context, name string) ([]string, error)
	}); ok {
		c.LookUp = network.LookupHost
	}
	for _, change := range adjust {
		change(&c)
	}
	ctx, stop := context.WithCancel(r.running)
	o.stop = stop
	r.group.Go(func() {
		defer close(o.done)
		defer stop()
		// Restarts an operator that exits without an error, as Kubernetes does. An error is for the test.
		for o.err == nil && ctx.Err() == nil {
			o.err = operator.Run(ctx, c)
		}
		if o.err != nil {
			c.Logger.Error(o.err, "the operator ended")
		}
	})
	return o, nil
}

// Stop stops the operator like SIGTERM from Kubernetes, and waits for its end.
func (o *Operator) Stop() error {
	o.stop()
	<-o.done
	if o.err != nil {
		return fmt.Errorf("the operator ended: %w", o.err)
	}
	return nil
}

// Kill stops the operator like SIGKILL, as seen from outside: from this moment on, none of its actions reaches the
// API server or a host.
func (o *Operator) Kill() {
	o.wires.cutConnections()
	o.stop()
	<-o.done
}

// Done returns a channel that is closed when the operator has stopped.
func (o *Operator) Done() <-chan struct{} { return o.done }

var errKilled = errors.New("the operator was killed")

// wires are all connections of an operator.
type wires struct {
	mu     sync.Mutex
	killed bool
	open   map[net.Conn]struct{}
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

func (w *wires) wrapDialer(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if w.isKilled() {
			return nil, errKilled
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return w.addConnection(conn)
	}
}

func (w *wires) isKilled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.killed
}

func (w *wires) addConnection(conn net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed {
		return nil, errors.Join(errKilled, conn.Close())
	}
	w.open[conn] = struct{}{}
	return &wire{Conn: conn, wires: w}, nil
}

func (w *wires) cutConnections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed = true
	for conn := range w.open {
		_ = conn.Close() // intended
	}
}

// wire is a connection that unregisters itself on Close.
type wire struct {
	net.Conn
	wires *wires
}

// Close implements net.Conn.
func (w *wire) Close() error {
	w.wires.mu.Lock()
	delete(w.wires.open, w.Conn)
	w.wires.mu.Unlock()
	return w.Conn.Close()
}
