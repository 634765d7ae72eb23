package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// listTimeout is the timeout of a scrape for listing the instances, which are in memory.
const listTimeout = 5 * time.Second

// instanceMetric is a metric of each WindowsInstance. Its series exist as long as the object.
type instanceMetric struct {
	name, help string
	labels     []Label
}

func (m instanceMetric) newDesc() *prometheus.Desc {
	var names []string
	for _, label := range m.labels {
		names = append(names, label.Name)
	}
	registerMetric(Definition{Name: m.name, Help: m.help, Type: TypeGauge, Labels: m.labels})
	return prometheus.NewDesc(m.name, m.help, names, nil)
}

// currentReasonLabel is a label with one value at a time for each instance.
var currentReasonLabel = Label{Name: "reason", Values: "one at a time for each `WindowsInstance`: `status.summary`"}

// Metrics of each instance.
var (
	instanceInfo = instanceMetric{"wmco_instance_info", "1 for each WindowsInstance.", []Label{nameLabel,
		{Name: "node", Values: "the Node's name"}, {Name: "version", Values: "the version of the operator that last configured the host"},
		{Name: "desired_state", Values: "`spec.desiredState`"}}}.newDesc()
	instanceStatus = instanceMetric{"wmco_instance_status",
		"1 for the reason that prevents a WindowsInstance from becoming Ready and up to date, or for Ready.",
		[]Label{nameLabel, currentReasonLabel}}.newDesc()
	instanceReady = instanceMetric{"wmco_instance_ready", "1 while the node of a WindowsInstance is verified and Ready, 0 otherwise.",
		[]Label{nameLabel}}.newDesc()
	instanceNotReadySince = instanceMetric{"wmco_instance_not_ready_since_timestamp_seconds",
		"Unix time at which a WindowsInstance was created or lost the condition Ready. Ready instances have no series.",
		[]Label{nameLabel, currentReasonLabel}}.newDesc()
	instanceDisruptionPending = instanceMetric{"wmco_instance_disruption_pending",
		"1 while a change of the node waits until the WindowsDisruptionPolicy allows it, 0 otherwise.",
		[]Label{nameLabel}}.newDesc()
	certificateExpiry = instanceMetric{"wmco_certificate_expiry_timestamp_seconds",
		"Unix time at which a client certificate expires that the operator renews for a service of the node.",
		[]Label{nameLabel, certificateLabel}}.newDesc()
	certificateRenewal = instanceMetric{"wmco_certificate_renewal_timestamp_seconds",
		"Unix time at which the operator will renew that certificate.", []Label{nameLabel, certificateLabel}}.newDesc()
)

var certificateLabel = Label{Name: "certificate", Values: "services with certificates that the operator renews"}

// Instances serves the metrics of each WindowsInstance while Start runs, and lists the instances at each scrape. The
// manager must run Instances, so that only the leader serves these metrics, and only with a complete cache.
type Instances struct {
	// Client reads the manager's cache.
	Client client.Reader
	// Namespace is the namespace of the operator.
	Namespace string
}

// serving is the running instance of Instances.
var serving atomic.Pointer[Instances]

func init() { metrics.Registry.MustRegister(instancesCollector{}) }

// Start implements manager.Runnable.
func (i *Instances) Start(ctx context.Context) error {
	serving.Store(i)
	<-ctx.Done()
	serving.CompareAndSwap(i, nil)
	return nil
}

type instancesCollector struct{}

// Describe implements prometheus.Collector.
func (instancesCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{instanceInfo, instanceStatus, instanceReady, instanceNotReadySince, instanceDisruptionPending,
		certificateExpiry, certificateRenewal} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (instancesCollector) Collect(series chan<- prometheus.Metric) {
	i := serving.Load()
	if i == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	var list v1alpha1.WindowsInstanceList
	// Deep copies are unnecessary: the objects are only read, and there can be a thousand.
	err := i.Client.List(ctx, &list, client.InNamespace(i.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		log.Log.WithName("metrics").Info("WindowsInstances cannot be listed, so their metrics are missing", "why",
			err.Error())
		return
	}
	for n := range list.Items {
		collectInstance(series, &list.Items[n])
	}
}

func collectInstance(series chan<- prometheus.Metric, instance *v1alpha1.WindowsInstance) {
	name, status := instance.Name, instance.Status
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		series <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
	}
	node, reason := "", status.Summary
	if status.NodeRef != nil && status.NodeRef.Confirmed {
		node = status.NodeRef.Name
	}
	ready, since := false, instance.CreationTimestamp
	if status.Readiness != nil {
		ready, since = status.Readiness.Ready, status.Readiness.Since
	}
	set(instanceInfo, 1, node, status.Version, string(instance.Spec.DesiredState))
	set(instanceStatus, 1, reason)
	set(instanceReady, boolToFloat(ready))
	set(instanceDisruptionPending, boolToFloat(status.DisruptionPending))
	if !ready && instance.Spec.DesiredState == v1alpha1.DesiredStateNode {
		set(instanceNotReadySince, float64(since.Unix()), reason)
	}
	for _, c := range status.Certificates {
		set(certificateExpiry, float64(c.NotAfter.Unix()), c.Name)
		set(certificateRenewal, float64(c.RenewAt.Unix()), c.Name)
	}
}

func boolToFloat(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
