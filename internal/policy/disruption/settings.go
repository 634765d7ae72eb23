package disruption

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Defaults of a WindowsDisruptionPolicy.
const (
	DefaultFailureDeadline = 30 * time.Minute
	DefaultDrainTimeout    = 15 * time.Minute
)

// Pools of nodes.
const (
	machineSetPrefix = "MachineSet/"
	// HostsPool is the pool of the listed hosts without the pool label.
	HostsPool   = "Hosts"
	hostsPrefix = HostsPool + "/"
	// MachinesPool is the pool of Machines that no MachineSet controls.
	MachinesPool = "Machines"
)

// Settings are the validated spec of a WindowsDisruptionPolicy with defaults.
type Settings struct {
	// Invalid describes the faults of the spec; empty if there are none. While the spec is invalid, only repairs and
	// removals are allowed.
	Invalid         string
	Paused          bool
	FailureDeadline time.Duration
	// DrainTimeout is shorter than FailureDeadline.
	DrainTimeout    time.Duration
	CanarySoak      time.Duration
	StopOnFailure   bool
	UpgradeStrategy v1alpha1.UpgradeStrategy
	HostPoolLabel   string
	// MaxUnavailable is the limit for all nodes.
	MaxUnavailable Limit
	// Pools are the pools with their own settings, by name.
	Pools map[string]PoolSettings
	// Windows are the maintenance windows. Without any, disruptions are allowed at all times.
	Windows []Window
}

// PoolSettings are the settings of one pool.
type PoolSettings struct {
	// MaxUnavailable is nil if the limit of all nodes applies to the pool.
	MaxUnavailable *Limit
	Paused         bool
}

// Limit is a number or a percentage of nodes; the other field is 0.
type Limit struct {
	Number, Percent int
}

// Of returns the limit for the given number of nodes.
func (l Limit) Of(nodes int) int {
	if l.Percent > 0 {
		return max(1, nodes*l.Percent/100)
	}
	return max(1, l.Number)
}

// HostPool returns the pool of a listed host whose Node has these labels. A host without the label is in HostsPool.
func (s Settings) HostPool(labels map[string]string) string {
	if value := labels[s.HostPoolLabel]; s.HostPoolLabel != "" && value != "" {
		return hostsPrefix + value
	}
	return HostsPool
}

// MachineSetPool returns the pool of the Machines of a MachineSet.
func MachineSetPool(name string) string { return machineSetPrefix + name }

// Parse validates a spec and sets defaults. The error lists the invalid fields with values and remedies. The settings
// are usable even if the spec is invalid: invalid fields have defaults, and Invalid is the error.
func Parse(spec v1alpha1.WindowsDisruptionPolicySpec) (Settings, error) {
	p := &parser{}
	settings := Settings{
		Paused:          spec.Paused,
		StopOnFailure:   spec.StopOnFailure,
		FailureDeadline: p.parseDuration("failureDeadline", spec.FailureDeadline, DefaultFailureDeadline, time.Minute),
		DrainTimeout:    p.parseDuration("drainTimeout", spec.DrainTimeout, DefaultDrainTimeout, time.Second),
		CanarySoak:      p.parseDuration("canarySoak", spec.CanarySoak, 0, 0),
		UpgradeStrategy: p.parseStrategy(spec.UpgradeStrategy),
		HostPoolLabel:   p.parseLabelKey(spec.HostPoolLabel),
		MaxUnavailable:  Limit{Number: 1},
		Pools:           p.parsePools(spec.Pools),
	}
	if settings.DrainTimeout >= settings.FailureDeadline {
		settings.DrainTimeout = settings.FailureDeadline / 2 // a longer drain would fail before the change began
	}
	if limit := p.parseLimit("maxUnavailable", spec.MaxUnavailable); limit != nil {
		settings.MaxUnavailable = *limit
	}
	for i, w := range spec.MaintenanceWindows {
		window, err := parseWindow(w)
		if err != nil {
			p.fieldErrors = append(p.fieldErrors, fmt.Errorf("spec.maintenanceWindows[%d].%w", i, err))
			continue
		}
		settings.Windows = append(settings.Windows, window)
	}
	if len(p.fieldErrors) == 0 {
		return settings, nil
	}
	settings.Invalid = p.formatErrors()
	return settings, errors.New(settings.Invalid)
}

// parser collects the faults of a spec.
type parser struct {
	fieldErrors []error
}

// formatErrors describes the first three faults. The full list could exceed the size of a status.
func (p *parser) formatErrors() string {
	const named = 3
	var words []string
	for i, wrong := range p.fieldErrors {
		if i == named {
			words = append(words, fmt.Sprintf("and %d more", len(p.fieldErrors)-named))
			break
		}
		words = append(words, wrong.Error())
	}
	return strings.Join(words, "; ")
}

func (p *parser) addFieldError(field string, value any, wrong, remedy string) {
	p.fieldErrors = append(p.fieldErrors, fieldError("spec."+field, value, wrong, remedy))
}

func (p *parser) parseDuration(field string, value *metav1.Duration, unset, least time.Duration) time.Duration {
	switch {
	case value == nil:
		return unset
	case value.Duration < least:
		p.addFieldError(field, value.Duration, "is too short", fmt.Sprintf("use %s or more, or omit it for %s", least, unset))
		return unset
	}
	return value.Duration
}

func (p *parser) parseStrategy(value v1alpha1.UpgradeStrategy) v1alpha1.UpgradeStrategy {
	switch value {
	case v1alpha1.UpgradeReplace, v1alpha1.UpgradeInPlace:
		return value
	case "":
	default:
		p.addFieldError("upgradeStrategy", string(value), "is not a strategy", fmt.Sprintf("use %s or %s", v1alpha1.UpgradeReplace,
			v1alpha1.UpgradeInPlace))
	}
	return v1alpha1.UpgradeReplace
}

func (p *parser) parseLabelKey(key string) string {
	if key == "" {
		return ""
	}
	if faults := validation.IsQualifiedName(key); len(faults) > 0 {
		p.addFieldError("hostPoolLabel", key, "is not a label key",
			"use a key such as topology.kubernetes.io/zone, or omit it for one pool with all listed hosts")
		return ""
	}
	return key
}

func (p *parser) parsePools(specs []v1alpha1.DisruptionPool) map[string]PoolSettings {
	pools := map[string]PoolSettings{}
	for i, spec := range specs {
		if !isPoolName(spec.Name) {
			p.addFieldError(fmt.Sprintf("pools[%d].name", i), spec.Name, "is not a pool name",
				"use MachineSet/<name>, Machines for Machines without a MachineSet, Hosts for the listed hosts, or Hosts/<value> for listed hosts with that value of the label hostPoolLabel")
			continue
		}
		if _, twice := pools[spec.Name]; twice {
			p.addFieldError(fmt.Sprintf("pools[%d].name", i), spec.Name, "is a duplicate", "remove one of the two entries")
			continue
		}
		pools[spec.Name] = PoolSettings{MaxUnavailable: p.parseLimit(fmt.Sprintf("pools[%d].maxUnavailable", i),
			spec.MaxUnavailable), Paused: spec.Paused}
	}
	return pools
}

func isPoolName(name string) bool {
	if set, found := strings.CutPrefix(name, machineSetPrefix); found {
		return len(validation.IsDNS1123Subdomain(set)) == 0
	}
	if value, found := strings.CutPrefix(name, hostsPrefix); found {
		return value != "" && len(validation.IsValidLabelValue(value)) == 0
	}
	return name == HostsPool || name == MachinesPool
}

// parseLimit parses a limit. It returns nil if the value is unset or invalid.
func (p *parser) parseLimit(field string, value *intstr.IntOrString) *Limit {
	if value == nil {
		return nil
	}
	text, percent := value.String(), false
	if value.Type == intstr.String {
		text, percent = strings.CutSuffix(text, "%")
	}
	number, err := strconv.ParseUint(text, 10, 31)
	if err != nil || number == 0 || percent && number > 100 {
		p.addFieldError(field, value.String(), "is not a number of nodes", "use a number from 1, or a percentage from 1% to 100%")
		return nil
	}
	if percent {
		return &Limit{Percent: int(number)}
	}
	return &Limit{Number: int(number)}
}
