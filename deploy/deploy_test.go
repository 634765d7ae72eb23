package deploy_test

import (
	"testing"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/deploy"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// operatorDeployment returns the manifest for the installation of the operator.
func operatorDeployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	data, err := deploy.Files.ReadFile("deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(data, &deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

//
func TestDeployment_ScheduledOnLinuxNodesOnly(t *testing.T) {
	if got := operatorDeployment(t).Spec.Template.Spec.NodeSelector[corev1.LabelOSStable]; got != "linux" {
		t.Errorf("the node selector asks for %q", got)
	}
}

// deploymentVariables returns the variables with a value in the manifest of the operator.
func deploymentVariables(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, variable := range operatorDeployment(t).Spec.Template.Spec.Containers[0].Env {
		if variable.ValueFrom == nil {
			values[variable.Name] = variable.Value
		}
	}
	return values
}

func TestDeployment_ShowsDefaultsOfCode(t *testing.T) {
	values := deploymentVariables(t)
	t.Run("the pause image", func(t *testing.T) {
		image := values["RELATED_IMAGE_WINDOWS_PAUSE"]
		if image != nodespec.DefaultPauseImage {
			t.Errorf("the manifest has %q, the code %q", image, nodespec.DefaultPauseImage)
		}
		if named, err := reference.ParseNamed(image); err != nil || reference.IsNameOnly(named) {
			t.Errorf("%q is no whole name of an image: %v", image, err)
		}
	})
	t.Run("rotation of logs", func(t *testing.T) {
		defaults, err := nodespec.ParseLogSettings("", "", "")
		if err != nil {
			t.Fatal(err)
		}
		shown, err := nodespec.ParseLogSettings(values["SERVICES_LOG_FILE_SIZE"], values["SERVICES_LOG_FILE_AGE"],
			values["SERVICES_LOG_FLUSH_INTERVAL"])
		if err != nil || shown != defaults {
			t.Errorf("the manifest has %+v, the code %+v: %v", shown, defaults, err)
		}
		if values["SERVICES_LOG_FILE_SIZE"] == "" || values["SERVICES_LOG_FILE_AGE"] == "" {
			t.Errorf("the manifest does not show them: %v", values)
		}
	})
}
