package kubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"sigs.k8s.io/yaml"
)

// runtimeImages are the images of a container runtime. It only reaches the registries of the images that can be
// pulled.
type runtimeImages struct {
	kubecontainer.ImageService
	present, reachable []string
	pulls              []string // requested pulls
}

func (r *runtimeImages) GetImageRef(_ context.Context, image kubecontainer.ImageSpec) (string, error) {
	if slices.Contains(r.present, image.Image) {
		return "sha256:" + image.Image, nil
	}
	return "", nil
}

func (r *runtimeImages) PullImage(_ context.Context, image kubecontainer.ImageSpec,
	credentials []credentialprovider.TrackedAuthConfig,
	_ *runtimeapi.PodSandboxConfig) (string, *credentialprovider.TrackedAuthConfig, error) {
	r.pulls = append(r.pulls, image.Image)
	if !slices.Contains(r.reachable, image.Image) || len(credentials) > 0 {
		return "", nil, errors.New("no registry has it")
	}
	r.present = append(r.present, image.Image)
	return "sha256:" + image.Image, nil, nil
}

func (r *runtimeImages) GetImageSize(context.Context, kubecontainer.ImageSpec) (uint64, error) {
	return 1, nil
}

type noTimes struct{}

func (noTimes) RecordImageStartedPulling(types.UID)  {}
func (noTimes) RecordImageFinishedPulling(types.UID) {}

// manager returns the image manager that the kubelet creates with that configuration: pkg/kubelet/kuberuntime,
// NewKubeGenericRuntimeManager.
func manager(t *testing.T, config *kubeletconfig.KubeletConfiguration, runtime *runtimeImages) images.ImageManager {
	t.Helper()
	if !utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		t.Fatal("this kubelet does not look at who has pulled an image: the test is about nothing")
	}
	policy, err := pullmanager.NewImagePullCredentialVerificationPolicy(
		kubeletconfig.ImagePullCredentialsVerificationPolicy(config.ImagePullCredentialsVerificationPolicy),
		config.PreloadedImagesVerificationAllowlist)
	if err != nil {
		t.Fatal(err)
	}
	records, err := pullmanager.NewFSPullRecordsAccessor(klog.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pulls, err := pullmanager.NewImagePullManager(t.Context(), records, policy, runtime, 1)
	if err != nil {
		t.Fatal(err)
	}
	return images.NewImageManager(record.NewFakeRecorder(100), &credentialprovider.BasicDockerKeyring{}, runtime, pulls,
		flowcontrol.NewBackOff(time.Second, time.Minute), config.SerializeImagePulls, config.MaxParallelImagePulls, 0, 0,
		noTimes{})
}

// sample returns the container of the example for users.
func sample(t *testing.T) corev1.Container {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "win-webserver.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(data, deployment); err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.Template.Spec.Containers[0]
}

//
func TestImagePull_LocalImageUsedAndPublicNeedsNoSecret(t *testing.T) {
	container := sample(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "win-webserver", UID: "uid"}}
	for _, path := range goldenFiles(t, "kubelet.conf") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			config := load(t, path)
			sandbox := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: pod.Name,
				Namespace: pod.Namespace, Uid: string(pod.UID)}}
			ensure := func(t *testing.T, runtime *runtimeImages, policy corev1.PullPolicy) error {
				t.Helper()
				_, message, err := manager(t, config, runtime).EnsureImageExists(t.Context(), nil, pod, container.Image, nil,
					sandbox, "", policy)
				if err != nil {
					t.Log(message)
				}
				return err
			}
			t.Run("an image that was brought beforehand is used with the sample's policy, and no registry is asked",
				func(t *testing.T) {
					runtime := &runtimeImages{present: []string{container.Image}}
					if err := ensure(t, runtime, container.ImagePullPolicy); err != nil || len(runtime.pulls) > 0 {
						t.Errorf("%v, pulled %q", err, runtime.pulls)
					}
				})
			t.Run("an image that is not there is pulled without credentials", func(t *testing.T) {
				runtime := &runtimeImages{reachable: []string{container.Image}}
				if err := ensure(t, runtime, container.ImagePullPolicy); err != nil || len(runtime.pulls) != 1 {
					t.Errorf("%v, pulled %q", err, runtime.pulls)
				}
			})
			t.Run("a kubelet that believes no image would ask a registry all the same, which the configuration does not want",
				func(t *testing.T) {
					suspicious := config.DeepCopy()
					suspicious.ImagePullCredentialsVerificationPolicy = string(kubeletconfig.AlwaysVerify)
					runtime := &runtimeImages{present: []string{container.Image}}
					if _, _, err := manager(t, suspicious, runtime).EnsureImageExists(t.Context(), nil, pod,
						container.Image, nil, sandbox, "",
						container.ImagePullPolicy); err == nil {
						t.Error("the test would not notice")
					}
				})
			t.Run("one that must be pulled each time is asked of its registry", func(t *testing.T) {
				runtime := &runtimeImages{present: []string{container.Image}}
				if err := ensure(t, runtime, corev1.PullAlways); err == nil || len(runtime.pulls) != 1 {
					t.Errorf("%v, pulled %q", err, runtime.pulls)
				}
			})
		})
	}
}
