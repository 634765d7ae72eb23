package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minAddressTimeout is the minimum time for one of several addresses. A host that has just booted needs more than the
// first retransmission of a SYN, which comes after one second.
const minAddressTimeout = 2 * time.Second

// dialTarget opens a TCP connection to the first usable address that accepts the connection.
func (d *Dialer) dialTarget(ctx context.Context, target Target) (net.Conn, error) {
	deadline := d.Clock.Now().Add(d.Limits.DialTimeout)
	addresses, err := d.resolveTarget(ctx, target)
	if err != nil {
		return nil, err
	}
	usable, err := target.usableAddresses(addresses)
	if err != nil {
		return nil, err
	}
	failures := map[string]error{}
	for i, address := range usable {
		timeout := addressTimeout(deadline.Sub(d.Clock.Now()), len(usable)-i)
		if timeout <= 0 {
			break
		}
		conn, err := d.dialAddress(ctx, target, address, timeout)
		switch {
		case err == nil:
			return target.checkConnection(conn)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		failures[address] = err
	}
	if len(failures) == 0 { // name resolution used the full time
		failures[target.Address] = &TimeoutError{Waiting: "the addresses of the DNS name", Limit: d.Limits.DialTimeout}
	}
	return nil, dialError(target, chooseFailure(failures), usable)
}

// chooseFailure selects the error to report for several addresses: a refusal rather than a timeout, otherwise the
// error of the lowest address. The dial order has no influence, because name servers change the order.
func chooseFailure(failures map[string]error) (chosen error) {
	for _, address := range slices.Sorted(maps.Keys(failures)) {
		if err := failures[address]; chosen == nil || isTimeout(chosen) && !isTimeout(err) {
			chosen = err
		}
	}
	return chosen
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// addressTimeout returns the share of the remaining time for the next of count addresses, divided as in net.Dialer. A
// silent address must not use up the time of the next addresses.
func addressTimeout(remaining time.Duration, count int) time.Duration {
	return max(remaining/time.Duration(count), min(remaining, minAddressTimeout))
}

// resolveTarget returns the addresses of the target in the order of the resolver. Without a resolver, it returns the
// name, which Dial resolves.
func (d *Dialer) resolveTarget(ctx context.Context, target Target) ([]string, error) {
	if _, err := netip.ParseAddr(target.Address); err == nil || d.LookUp == nil {
		return []string{target.Address}, nil
	}
	var addresses []string
	lookUp := func(ctx context.Context) (err error) {
		addresses, err = d.LookUp(ctx, target.Address)
		return err
	}
	err := d.runWithTimeout(ctx, "the addresses of the DNS name", d.Limits.DialTimeout, lookUp, nil)
	var timeout *TimeoutError
	var unresolved *net.DNSError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &unresolved):
	case errors.As(err, &timeout):
		err = &net.DNSError{Err: timeout.Error(), Name: target.Address, IsTimeout: true}
	case err != nil:
		err = &net.DNSError{UnwrapErr: err, Err: causeOf(err), Name: target.Address}
	case len(addresses) == 0:
		err = &net.DNSError{Err: "no such host", Name: target.Address, IsNotFound: true}
	}
	if err != nil {
		return nil, dialError(target, err, nil)
	}
	return addresses, nil
}

// usableAddresses returns the addresses that can belong to a host, starting with the last reached address. It returns
// an error if there are none.
func (t Target) usableAddresses(addresses []string) ([]string, error) {
	var forbidden error
	var usable []string
	// The error must not depend on the order of the records, which name servers change.
	for _, text := range slices.Sorted(slices.Values(addresses)) {
		if address, err := netip.ParseAddr(text); err == nil { // otherwise a name that Dial resolves
			if err := t.checkAddress(address); err != nil {
				forbidden = cmp.Or(forbidden, err)
				continue
			}
		}
		usable = append(usable, text)
	}
	if len(usable) == 0 {
		return nil, forbidden
	}
	slices.SortFunc(usable, func(a, b string) int { return slices.Index(addresses, a) - slices.Index(addresses, b) })
	if i := slices.Index(usable, t.LastReachedAddress); i > 0 {
		usable = slices.Insert(slices.Delete(usable, i, i+1), 0, t.LastReachedAddress)
	}
	return usable, nil
}

// checkAddress rejects an address that cannot belong to a host.
func (t Target) checkAddress(address netip.Addr) error {
	if t.NoHostAt == nil {
		return nil
	}
	address = address.Unmap().WithZone("")
	if what := t.NoHostAt(address); what != "" {
		return forbiddenAddressError(t, address, what)
	}
	return nil
}

// checkConnection closes a connection if the remote end cannot be a host, before any data is sent.
func (t Target) checkConnection(conn net.Conn) (net.Conn, error) {
	end, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return conn, nil //nolint:nilerr // it has no IP address to check, as in tests
	}
	if err := t.checkAddress(end.Addr()); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// dialAddress opens a TCP connection to one address, or to a name that Dial resolves.
func (d *Dialer) dialAddress(ctx context.Context, target Target, address string, timeout time.Duration) (net.Conn, error) {
	var conn net.Conn
	dial := func(ctx context.Context) (err error) {
		conn, err = d.Dial(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(target.Port)))
		return err
	}
	closeConn := func() {
		if conn != nil {
			_ = conn.Close()
		}
	}
	err := d.runWithTimeout(ctx, fmt.Sprintf("a TCP connection to port %d", target.Port), timeout, dial, closeConn)
	var late *TimeoutError
	switch {
	case errors.As(err, &late):
		// The share of one address varies by the few clock ticks between two statements.
		return nil, &TimeoutError{Waiting: late.Waiting, Limit: d.Limits.DialTimeout}
	case err != nil:
		return nil, err
	}
	return conn, nil
}

// runWithTimeout runs a call within a timeout of the dialer's clock. After the timeout, runWithTimeout returns
// immediately, and abandoned (may be nil) runs when the call has ended.
func (d *Dialer) runWithTimeout(ctx context.Context, waiting string, timeout time.Duration, call func(context.Context) error,
	abandoned func()) error {
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = call(callCtx)
	}()
	if late := newWatch(d.Clock, waiting, timeout).waitFor(ctx, done); late != nil {
		if abandoned != nil {
			go func() {
				<-done
				abandoned()
			}()
		}
		return late
	}
	return err
}

// dialError describes the failure to open a TCP connection to any of the addresses.
func dialError(target Target, err error, addresses []string) error {
	e := &Error{Host: target.Address, Stage: StageTCP, Err: err}
	var unresolved *net.DNSError
	where := ""
	if len(addresses) > 1 {
		// Name servers change the order of the addresses, and the message must stay the same.
		where = " of " + strings.Join(slices.Sorted(slices.Values(addresses)), " or ")
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &unresolved):
		e.Reason, e.Stage = ReasonNameNotResolved, StageName
		e.Message = fmt.Sprintf("the DNS name does not resolve to an address (%s)", lastPart(unresolved.Err))
		e.Next = "correct the name, or the DNS record that the cluster's nodes use"
	case isTimeout(err):
		e.Reason = ReasonConnectionTimedOut
		e.Message = fmt.Sprintf("no response on TCP port %d%s (%s)", target.Port, where, causeOf(err))
		e.Next = "check that the host runs, and that firewalls and routes allow connections from the cluster's nodes to that port"
	default:
		e.Reason = ReasonUnreachable
		e.Message = fmt.Sprintf("no TCP connection to port %d%s (%s)", target.Port, where, causeOf(err))
		e.Next = "check the address, that the OpenSSH server runs on the host, and that the firewall of the host allows that port"
	}
	return e
}

// causeOf returns the innermost message of a network error, without addresses and operations.
func causeOf(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// lastPart returns the text after the last colon: the cause without the resolver's sockets, which have varying ports.
func lastPart(text string) string {
	return strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])
}
