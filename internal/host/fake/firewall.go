package fake

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// newFirewall returns the rules of a Windows Server with the SSH server installed. On Windows Server 2025 the
// built-in SSH rule applies to private networks only.
func newFirewall(system host.SystemInfo) map[string]host.FirewallRule {
	ssh := host.AllProfiles
	if system.Version == WindowsServer2025().Version {
		ssh = host.ProfilePrivate
	}
	rules := map[string]host.FirewallRule{}
	for _, rule := range []host.FirewallRule{
		{Name: "OpenSSH-Server-In-TCP", DisplayName: "OpenSSH SSH Server (sshd)", Protocol: "TCP", LocalPort: 22,
			Enabled: true, Allow: true, Profiles: ssh},
		{Name: "WINRM-HTTP-In-TCP", DisplayName: "Windows Remote Management (HTTP-In)", Protocol: "TCP", LocalPort: 5985,
			Enabled: true, Allow: true},
		{Name: "RemoteDesktop-UserMode-In-TCP", DisplayName: "Remote Desktop - User Mode (TCP-In)", Protocol: "TCP",
			LocalPort: 3389, Allow: true},
		{Name: "FPS-SMB-In-TCP", DisplayName: "File and Printer Sharing (SMB-In)", Protocol: "TCP",
			LocalPort: 445, Allow: true},
		{Name: "CoreNet-DHCP-In", DisplayName: "Core Networking - Dynamic Host Configuration Protocol (DHCP-In)",
			Protocol: "UDP", LocalPort: 68, Enabled: true, Allow: true},
		{Name: "MDNS-In-UDP", DisplayName: "mDNS (UDP-In)", Protocol: "UDP", LocalPort: 5353, Enabled: true, Allow: true},
	} {
		rules[foldCase(rule.Name)] = rule
	}
	return rules
}

// networkProfile returns the network profile of the machine. An administrator has set it to private, but the virtual
// adapter that HNS creates for a pod network has the default, public.
func (m *Machine) networkProfile() host.FirewallProfiles {
	if slices.ContainsFunc(m.networks, isBoundToAdapter) {
		return host.ProfilePublic
	}
	return host.ProfilePrivate
}

// GroupPolicy is the firewall policy of a domain for its members.
type GroupPolicy struct {
	// Void are the profiles that disable the machine's own rules (AllowLocalPolicyMerge is 0).
	Void []host.FirewallProfiles
	// Rules apply in addition to the machine's own rules. host.Firewall does not list them.
	Rules []host.FirewallRule
}

// SetGroupPolicy replaces the group policy.
func (m *Machine) SetGroupPolicy(policy GroupPolicy) {
	m.lock()
	defer m.unlock()
	m.options.GroupPolicy = policy
}

// effectiveRules returns the effective rules of a profile.
func (m *Machine) effectiveRules(profile host.FirewallProfiles) []host.FirewallRule {
	rules := m.options.GroupPolicy.Rules
	if !slices.Contains(m.options.GroupPolicy.Void, profile) {
		rules = slices.Concat(rules, m.sortedRules())
	}
	return rules
}

// sshBlocked returns the profiles that apply only rules of the policy and do not allow SSH.
func (m *Machine) sshBlocked() []host.FirewallProfiles {
	var blocked []host.FirewallProfiles
	for _, profile := range m.options.GroupPolicy.Void {
		if !isPortAllowed(m.effectiveRules(profile), profile, 22) {
			blocked = append(blocked, profile)
		}
	}
	return blocked
}

// IsPortAllowed reports whether inbound TCP to the port is allowed: an enabled rule for the current profile allows
// the port, no rule blocks it, and the machine has its address.
func (m *Machine) IsPortAllowed(port int) bool {
	m.lock()
	defer m.unlock()
	profile := m.networkProfile()
	return !m.cutOff && isPortAllowed(m.effectiveRules(profile), profile, port)
}

// isPortAllowed reports whether an enabled rule allows inbound TCP to the port in a profile and no rule blocks the
// port.
func isPortAllowed(rules []host.FirewallRule, profile host.FirewallProfiles, port int) bool {
	allowed := false
	for _, rule := range rules {
		if !rule.Profiles.Has(profile) || !rule.Enabled || rule.Protocol != "TCP" || rule.LocalPort != port {
			continue
		}
		if !rule.Allow {
			return false
		}
		allowed = true
	}
	return allowed
}

// firewall implements host.Firewall for one process.
type firewall struct{ p *Process }

func (f firewall) Rules(ctx context.Context) (rules []host.FirewallRule, err error) {
	err = f.p.runOperation(ctx, "Firewall", "Rules", "", func(m *Machine) error {
		if err := m.checkRulesReadable(); err != nil {
			return fmt.Errorf("list firewall rules: %w", err)
		}
		rules = m.sortedRules()
		return nil
	})
	return rules, err
}

// checkRulesReadable returns the error of listing the rules. Changes read the list as well.
func (m *Machine) checkRulesReadable() error { return m.faults.readList(FirewallList, len(m.firewall)) }

func (m *Machine) sortedRules() []host.FirewallRule {
	rules := make([]host.FirewallRule, 0, len(m.firewall))
	for _, rule := range m.firewall {
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b host.FirewallRule) int { return strings.Compare(foldCase(a.Name), foldCase(b.Name)) })
	return rules
}

func (f firewall) SetRule(ctx context.Context, rule host.FirewallRule) error {
	return f.p.runOperation(ctx, "Firewall", "SetRule", rule.Name, func(m *Machine) error {
		switch {
		case rule.Name == "" || rule.DisplayName == "":
			return fmt.Errorf("set firewall rule %q: a firewall rule needs a name and a display name", rule.Name)
		case rule.Protocol != "TCP" && rule.Protocol != "UDP":
			return fmt.Errorf("set firewall rule %s: protocol %q is neither TCP nor UDP", rule.Name, rule.Protocol)
		case !rule.Profiles.IsValid():
			return fmt.Errorf("set firewall rule %s: profiles %q are not valid", rule.Name, rule.Profiles)
		case rule.LocalPort < 1 || rule.LocalPort > 65535:
			return fmt.Errorf("set firewall rule %s: port %d is not valid", rule.Name, rule.LocalPort)
		}
		if err := m.checkRulesReadable(); err != nil {
			return fmt.Errorf("set firewall rule %s: %w", rule.Name, err)
		}
		rule.Profiles = rule.Profiles.Normal()
		m.firewall[foldCase(rule.Name)] = rule
		f.p.recordEntry(KindFirewall, "set "+rule.Name, 0)
		return nil
	})
}

func (f firewall) DeleteRule(ctx context.Context, name string) error {
	return f.p.runOperation(ctx, "Firewall", "DeleteRule", name, func(m *Machine) error {
		if err := m.checkRulesReadable(); err != nil {
			return fmt.Errorf("delete firewall rule %s: %w", name, err)
		}
		if _, ok := m.firewall[foldCase(name)]; !ok {
			return fmt.Errorf("delete firewall rule %s: %w", name, host.ErrNotExist)
		}
		delete(m.firewall, foldCase(name))
		f.p.recordEntry(KindFirewall, "delete "+name, 0)
		return nil
	})
}

// AddOutboundRule adds an outbound rule, as another program does. host.Firewall supports inbound rules only. An
// inbound and an outbound rule may have the same name.
func (m *Machine) AddOutboundRule(name string) {
	m.lock()
	defer m.unlock()
	m.outboundRules[foldCase(name)] = name
}

// HasOutboundRule reports whether the firewall has an outbound rule of the name.
func (m *Machine) HasOutboundRule(name string) bool {
	m.lock()
	defer m.unlock()
	_, there := m.outboundRules[foldCase(name)]
	return there
}

// Listen opens a port for external clients through Options.Listen. Connections rejected by the machine's firewall are
// closed unread. The listener closes when the process ends.
func (p *Process) Listen(port int) (net.Listener, error) {
	open := p.Machine.options.Listen
	if open == nil {
		return nil, fmt.Errorf("listen on port %d of %s: the machine has no network", port, p.Machine.options.Name)
	}
	var boot context.Context
	if err := p.runLocked(func(m *Machine) error { boot = m.up; return nil }); err != nil {
		return nil, err
	}
	listener, err := open(boot, port)
	if err != nil {
		return nil, fmt.Errorf("listen on port %d of %s: %w", port, p.Machine.options.Name, err)
	}
	err = p.runLocked(func(*Machine) error { p.closers = append(p.closers, listener); return nil })
	if err != nil {
		_ = listener.Close() // the process died in the meantime
		return nil, err
	}
	return &guardedListener{Listener: listener, isAllowed: func() bool { return p.Machine.IsPortAllowed(port) }}, nil
}

type guardedListener struct {
	net.Listener
	isAllowed func() bool
}

// Accept implements net.Listener.
func (l *guardedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil || l.isAllowed() {
			return connection, err
		}
		_ = connection.Close()
	}
}
