//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-ole/go-ole"
	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// firewall implements host.Firewall with the COM API of Windows Defender Firewall (FirewallAPI.dll, in process),
// which the console of the firewall also uses. All calls use IDispatch, by name, in the multithreaded apartment:
//
//	CoCreateInstance {E2B3C97F-6AE1-41AC-817A-F6F92166D7DD} (HNetCfg.FwPolicy2, INetFwPolicy2)
//	  get Rules: VT_DISPATCH, INetFwRules
//	INetFwRules
//	  get _NewEnum: VT_UNKNOWN with IEnumVARIANT; Next(1, ...) returns VT_DISPATCH, INetFwRule
//	  Add(rule VT_DISPATCH), Remove(name VT_BSTR)
//	CoCreateInstance {2C5BC43E-3369-4C33-AB0C-BE9469677AF4} (HNetCfg.FWRule, INetFwRule)
//	  get and put Name, Description, LocalPorts: VT_BSTR (NULL is ""); Protocol, Direction, Action, Profiles: VT_I4;
//	  Enabled: VT_BOOL
//
// Protocol is set before LocalPorts, because Windows rejects the reverse order. SetRule replaces all inbound rules
// of the same name. Only inbound rules for exactly one TCP or UDP port are listed.
type firewall struct{}

func (firewall) Rules(ctx context.Context) ([]host.FirewallRule, error) {
	list, err := runInCOM(ctx, func() ([]host.FirewallRule, error) {
		rules, err := openFirewall()
		if err != nil {
			return nil, err
		}
		defer rules.Release()
		return listRules(rules)
	})
	if err != nil {
		return nil, fmt.Errorf("list the rules of Windows Firewall: %w", err)
	}
	return list, nil
}

func (firewall) SetRule(ctx context.Context, rule host.FirewallRule) error {
	properties, err := propertiesOf(rule)
	if err == nil {
		_, err = runInCOM(ctx, func() (struct{}, error) { return struct{}{}, setRule(properties) })
	}
	if err != nil {
		return fmt.Errorf("set firewall rule %q: %w", rule.Name, err)
	}
	return nil
}

func (firewall) DeleteRule(ctx context.Context, name string) error {
	removed, err := runInCOM(ctx, func() (int, error) {
		rules, err := openFirewall()
		if err != nil {
			return 0, err
		}
		defer rules.Release()
		return removeRules(rules, name)
	})
	if err == nil && removed == 0 {
		err = host.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("delete firewall rule %q: %w", name, err)
	}
	return nil
}

// openFirewall returns INetFwPolicy2.Rules. The caller must release the object.
func openFirewall() (*ole.IDispatch, error) {
	policy, err := createObject("{E2B3C97F-6AE1-41AC-817A-F6F92166D7DD}")
	if err != nil {
		return nil, fmt.Errorf("open the policy of Windows Firewall: %w", err)
	}
	defer policy.Release()
	rules, err := policy.GetProperty("Rules")
	if err != nil {
		return nil, fmt.Errorf("read the rules of Windows Firewall (the Windows service mpssvc must be running): %w", comError(err))
	}
	return rules.ToIDispatch(), nil
}

// createObject creates an object of a COM class. The caller must release the object.
func createObject(class string) (*ole.IDispatch, error) {
	object, err := ole.CreateInstance(ole.NewGUID(class), ole.IID_IUnknown)
	if err != nil {
		return nil, comError(err)
	}
	defer object.Release()
	dispatch, err := object.QueryInterface(ole.IID_IDispatch)
	return dispatch, comError(err)
}

// setRule completes the new rule before it replaces the old rule.
func setRule(p ruleProperties) error {
	rules, err := openFirewall()
	if err != nil {
		return err
	}
	defer rules.Release()
	rule, err := createObject("{2C5BC43E-3369-4C33-AB0C-BE9469677AF4}")
	if err != nil {
		return fmt.Errorf("create the rule object: %w", err)
	}
	defer rule.Release()
	for _, property := range []struct {
		name  string
		value any
	}{
		{"Name", p.Name},
		{"Description", p.Description},
		{"Protocol", int32(p.Protocol)},
		{"LocalPorts", p.LocalPorts},
		{"Direction", int32(p.Direction)},
		{"Action", int32(p.Action)},
		{"Profiles", int32(p.Profiles)},
		{"Enabled", p.Enabled},
	} {
		if _, err := rule.PutProperty(property.name, property.value); err != nil {
			return fmt.Errorf("set property %s to %v: %w", property.name, property.value, comError(err))
		}
	}
	if _, err := removeRules(rules, p.Name); err != nil {
		return err
	}
	if _, err := rules.CallMethod("Add", rule); err != nil {
		return fmt.Errorf("add the rule: %w", comError(err))
	}
	return nil
}

// removeRules removes all inbound rules of a name, compared without case, and returns the number of removed rules.
// Windows removes one rule per call by name and may choose any rule of that name, even an outbound rule. Therefore
// each rule first gets a unique name.
func removeRules(rules *ole.IDispatch, name string) (removed int, err error) {
	var named []*ole.IDispatch
	defer func() {
		for _, rule := range named {
			rule.Release()
		}
	}()
	err = eachRule(rules, func(rule *ole.IDispatch) error {
		r := propertyReader{object: rule}
		if strings.EqualFold(originalName(r.readString("Name")), name) && r.readInt("Direction") == firewallInbound {
			rule.AddRef()
			named = append(named, rule)
		}
		return r.err
	})
	for _, rule := range named {
		if err != nil {
			break
		}
		if err = removeRule(rules, rule, name); err == nil {
			removed++
		}
	}
	return removed, err
}

// removeRule renames a rule to a unique name and removes that name.
func removeRule(rules, rule *ole.IDispatch, name string) error {
	id, err := windows.GenerateGUID()
	if err != nil {
		return fmt.Errorf("remove %q: %w", name, err)
	}
	unique := removalName(name, id.String())
	if _, err := rule.PutProperty("Name", unique); err != nil {
		return fmt.Errorf("rename %q before its removal: %w", name, comError(err))
	}
	if _, err := rules.CallMethod("Remove", unique); err != nil {
		return fmt.Errorf("remove %q: %w", unique, comError(err))
	}
	return nil
}

func listRules(rules *ole.IDispatch) (list []host.FirewallRule, err error) {
	err = eachRule(rules, func(rule *ole.IDispatch) error {
		properties, err := readRule(rule)
		if err != nil {
			return err
		}
		if known, ok := properties.toFirewallRule(); ok {
			list = append(list, known)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b host.FirewallRule) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return list, err
}

func eachRule(rules *ole.IDispatch, do func(*ole.IDispatch) error) error {
	return forEachItem(rules, comError, func(item *ole.VARIANT) error {
		rule := item.ToIDispatch()
		if rule == nil {
			return fmt.Errorf("the firewall lists a value of type %d that is not a rule", item.VT)
		}
		return do(rule)
	})
}

// readRule reads a rule. For unlisted rules, only the excluding properties are read, because Windows has about 500
// rules.
func readRule(rule *ole.IDispatch) (ruleProperties, error) {
	r := propertyReader{object: rule}
	p := ruleProperties{Direction: r.readInt("Direction"), Protocol: r.readInt("Protocol")}
	if p.Direction != firewallInbound || p.Protocol != firewallTCP && p.Protocol != firewallUDP {
		return p, r.err
	}
	p.Name, p.Description, p.LocalPorts = r.readString("Name"), r.readString("Description"), r.readString("LocalPorts")
	p.Enabled, p.Action, p.Profiles = r.readBool("Enabled"), r.readInt("Action"), r.readInt("Profiles")
	return p, r.err
}

// propertyReader reads properties of an object until a read fails.
type propertyReader struct {
	object *ole.IDispatch
	err    error
}

func (r *propertyReader) read(name string) any {
	if r.err != nil {
		return nil
	}
	value, err := r.object.GetProperty(name)
	if err != nil {
		r.err = fmt.Errorf("read property %s: %w", name, comError(err))
		return nil
	}
	defer value.Clear() //nolint:errcheck // only memory
	return value.Value()
}

func (r *propertyReader) readInt(name string) int {
	number, _ := r.read(name).(int32)
	return int(number)
}

func (r *propertyReader) readString(name string) string {
	text, _ := r.read(name).(string)
	return text
}

func (r *propertyReader) readBool(name string) bool {
	truth, _ := r.read(name).(bool)
	return truth
}

// comError adds the code to a COM error. If the code of the method is nested, the message of the error is only
// "exception occurred".
func comError(err error) error {
	var failure *ole.OleError
	if !errors.As(err, &failure) {
		return err
	}
	code := uint32(failure.Code())
	var inside ole.EXCEPINFO
	if errors.As(failure.SubError(), &inside) && inside.SCODE() != 0 {
		code = inside.SCODE()
	}
	return fmt.Errorf("%w (0x%08x)", err, code)
}
