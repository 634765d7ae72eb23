package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/windows-machine-config/wmco/lab/process"
)

// ProcessOptions configure an operator in its own process.
type ProcessOptions struct {
	// Program is the operator's executable.
	Program string
	// Log is the file that the operator's log is appended to.
	Log string
	// Flags are added to the required flags, and Environ to the environment of this process.
	Flags, Environ []string
}

// OperatorProcess is the shipped operator in its own process.
type OperatorProcess struct {
	*process.Process
	env     *Environment
	options ProcessOptions
}

// OperatorVersion returns the version that an operator's executable prints.
func OperatorVersion(ctx context.Context, program string) (string, error) {
	output, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return "", fmt.Errorf("run %s version: %w", program, err)
	}
	_, rest, _ := strings.Cut(string(output), ` version: "`)
	version, _, found := strings.Cut(rest, `"`)
	if !found {
		return "", fmt.Errorf("%s version has no version in its output %q", program, output)
	}
	return version, nil
}

// StartOperator starts the operator's executable with the flags of the Deployment and the rights of the
// ServiceAccount, after InstallOperator. The hosts must be in a RealNetwork. The caller must stop the process.
func (r *Environment) StartOperator(o ProcessOptions) (*OperatorProcess, error) {
	r.mu.Lock()
	config, namespace := r.operatorConfig, r.namespace
	r.mu.Unlock()
	if config == nil {
		return nil, errors.New("start the operator: it is not installed")
	}
	if err := r.cluster.WriteKubeconfig(r.operatorKubeconfig(), config); err != nil {
		return nil, err
	}
	command := exec.Command(o.Program, append(r.operatorFlags(o), "--health-probe-bind-address=:8081")...)
	command.Env = operatorEnviron(namespace, o)
	p, err := process.Start("the operator", command, o.Log)
	if err != nil {
		return nil, err
	}
	return &OperatorProcess{p, r, o}, nil
}

func (r *Environment) operatorKubeconfig() string { return filepath.Join(r.dir, "operator.kubeconfig") }

func (r *Environment) operatorFlags(o ProcessOptions) []string {
	return append([]string{"--kubeconfig=" + r.operatorKubeconfig(), "--payload-dir=" + r.payloadDir}, o.Flags...)
}

func operatorEnviron(namespace string, o ProcessOptions) []string {
	return append(append(os.Environ(), "WATCH_NAMESPACE="+namespace), o.Environ...)
}

// OperatorCommand returns a command of the operator's program, with the rights and the payload of the operator that
// StartOperator starts with these options.
func (r *Environment) OperatorCommand(ctx context.Context, o ProcessOptions, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, o.Program, append(r.operatorFlags(o), arguments...)...)
	command.Env = operatorEnviron(r.Namespace(), o)
	return command
}

// StartAgain starts the same operator again, after this process has stopped.
func (p *OperatorProcess) StartAgain() (*OperatorProcess, error) {
	return p.env.StartOperator(p.options)
}
