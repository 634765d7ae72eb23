package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	ignition "github.com/coreos/ignition/v2/config/v3_5"
	ignitiontypes "github.com/coreos/ignition/v2/config/v3_5/types"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/vincent-petithory/dataurl"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Files of the workers' Ignition that Windows nodes need too.
const (
	kubeletConfigPath = "/etc/kubernetes/kubelet.conf"
	kubeletCAPath     = "/etc/kubernetes/kubelet-ca.crt"
)

// fileLimit is the maximum size in bytes of a file in the Ignition; actual files are much smaller.
const fileLimit = 4 << 20

// readWorkerConfig reads the configuration of the Linux workers: the rendered MachineConfig of their pool.
//
func (n *notices) readWorkerConfig(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	pool := &machineconfigv1.MachineConfigPool{}
	if err := get(ctx, reader, workerPool, pool, workerPoolID,
		"The machine config operator creates it; Windows nodes take their settings from it."); err != nil {
		return err
	}
	name, err := renderedName(pool)
	if err != nil {
		return err
	}
	id := "MachineConfig " + name
	rendered := &machineconfigv1.MachineConfig{}
	if err := get(ctx, reader, name, rendered, id,
		"MachineConfigPool worker names it; the machine config operator renders it."); err != nil {
		return err
	}
	if rendered.Spec.FIPS {
		n.addNotice(subject{id, rendered.ResourceVersion}, "spec.fips",
			"Linux workers run in FIPS mode, and Windows nodes do not. Enable the Windows policy \"System cryptography: Use FIPS compliant algorithms\" "+
				"in the image of the hosts or by group policy.")
	}
	worker, err := parseIgnition(rendered.Spec.Config.Raw)
	if err != nil {
		return &Error{Object: id, Field: "spec.config",
			Message: err.Error() + ". The machine config operator renders it from the worker MachineConfigs."}
	}
	if err := readWorkerKubelet(worker, id, facts); err != nil {
		return err
	}
	n.reportCRIOCredentials(worker)
	if err := n.readPoolSettings(ctx, reader, pool); err != nil {
		return err
	}
	return readKubeletClientCA(ctx, reader, worker, id, facts)
}

// workerPoolID identifies the pool of Linux workers in messages.
const workerPoolID = "MachineConfigPool " + workerPool

// renderedName returns the configuration that the machine config server would currently provide to a new Linux
// worker. This is the target of the pool (spec.configuration) once one machine runs with the target, and until
// then the configuration of all machines (status.configuration). Thus Windows nodes neither receive a
// configuration without a working machine, nor wait for the last of a thousand Linux workers.
func renderedName(pool *machineconfigv1.MachineConfigPool) (string, error) {
	target, inForce := pool.Spec.Configuration.Name, pool.Status.Configuration.Name
	// A machine count from before the target changed counts machines of the former target.
	proven := pool.Status.UpdatedMachineCount > 0 && pool.Status.ObservedGeneration >= pool.Generation
	switch {
	case target == "" && inForce == "":
		return "", &Error{Object: workerPoolID, Field: "spec.configuration.name",
			Message: "it is empty. The machine config operator sets it once it has rendered the workers' configuration."}
	case inForce == "", target != "" && proven:
		return target, nil
	}
	return inForce, nil
}

// workerIgnition contains the files of an Ignition configuration by path, and its systemd units by name.
type workerIgnition struct {
	files map[string]ignitiontypes.Resource
	units map[string]string
}

// parseIgnition parses an Ignition configuration of any version 3. Errors never quote the configuration,
// because it contains secrets.
func parseIgnition(raw []byte) (workerIgnition, error) {
	config, _, err := ignition.ParseCompatibleVersion(raw)
	if err != nil {
		return workerIgnition{}, fmt.Errorf("it is not a valid Ignition configuration of version 3.0 to 3.5: %w", err)
	}
	worker := workerIgnition{files: map[string]ignitiontypes.Resource{}, units: map[string]string{}}
	for _, file := range config.Storage.Files {
		worker.files[file.Path] = file.Contents
	}
	for _, unit := range config.Systemd.Units {
		if unit.Contents != nil {
			worker.units[unit.Name] = *unit.Contents
		}
	}
	return worker, nil
}

// fileContent returns the content of a file; found is false if the Ignition does not contain the file.
func (w workerIgnition) fileContent(path string) (content []byte, found bool, err error) {
	resource, ok := w.files[path]
	if !ok {
		return nil, false, nil
	}
	if resource.Source == nil || *resource.Source == "" {
		return nil, true, nil
	}
	// The error of the library is discarded because it may quote the content.
	url, err := dataurl.DecodeString(*resource.Source)
	if err != nil {
		return nil, true, errors.New("its content is not a data URL")
	}
	content = url.Data
	if resource.Compression != nil && *resource.Compression == "gzip" {
		if content, err = decompressGzip(content); err != nil {
			return nil, true, err
		}
	}
	if len(content) > fileLimit {
		return nil, true, errTooLarge
	}
	return content, true, nil
}

var errTooLarge = fmt.Errorf("its content is larger than %d bytes", fileLimit)

func decompressGzip(compressed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("its content is not compressed with gzip: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(reader, fileLimit+1))
	if err != nil {
		return nil, fmt.Errorf("its content cannot be decompressed: %w", err)
	}
	if len(content) > fileLimit {
		return nil, errTooLarge
	}
	return content, nil
}
