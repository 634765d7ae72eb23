package sshkeysecret_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/userdata"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{})

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(lab.Main(m))
}

const machineAPI = "openshift-machine-api"

type azureClusterSource struct{}

func (azureClusterSource) Current() (nodespec.Cluster, error) {
	return nodespec.Cluster{Platform: "Azure"}, nil
}

// run runs the controller with a manager until the end of the test, as the operator does.
func run(t *testing.T, namespace string) client.Client {
	t.Helper()
	c := lab.Cluster(t)
	skip := true
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: sshkeysecret.SecretCache(namespace)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &sshkeysecret.Reconciler{Client: mgr.GetClient(), Namespace: namespace, Events: mgr.GetEventRecorder("test"),
		Cluster: azureClusterSource{}}
	if err := r.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	live, err := client.New(c.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func privateKey(t *testing.T) (content []byte, authorized string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	content = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	key, err := sshkey.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return content, key.AuthorizedKey()
}

// waitForUserData waits until the user data in a namespace contains a key, and returns the Secret.
func waitForUserData(t *testing.T, c client.Client, namespace, authorized string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 3*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: userdata.SecretName}, secret)
			settings, parseErr := userdata.ParseHeader(secret.Data[userdata.SecretKey])
			return err == nil && parseErr == nil && settings.PublicKey == authorized && settings.User == "capi",
				client.IgnoreNotFound(err)
		})
	if err != nil {
		t.Fatalf("the user data in %s: %v", namespace, err)
	}
	return secret
}

//
func TestUserData_WatchedAndCorrected(t *testing.T) {
	namespace := clustertest.Namespace(t, lab.Cluster(t))
	c := run(t, namespace)
	content, authorized := privateKey(t)
	must := func(err error) {
		t.Helper()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sshkeysecret.SecretName},
		Data: map[string][]byte{sshkeysecret.SecretKey: content}}
	must(c.Create(t.Context(), own))
	must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machineAPI}}))
	first := waitForUserData(t, c, machineAPI, authorized)
	if first.Type != corev1.SecretTypeOpaque {
		t.Errorf("its type is %s", first.Type)
	}

	t.Run("a namespace for Cluster API that comes later gets it too", func(t *testing.T) {
		must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sshkeysecret.ClusterAPINamespace}}))
		mirror := waitForUserData(t, c, sshkeysecret.ClusterAPINamespace, authorized)
		if !bytes.Equal(mirror.Data[userdata.SecretKey], first.Data[userdata.SecretKey]) {
			t.Error("it is another")
		}
	})
	t.Run("an edit is corrected in the same Secret", func(t *testing.T) {
		edited := first.DeepCopy()
		edited.Data[userdata.SecretKey] = []byte("shutdown /s")
		edited.Labels["team"] = "windows"
		must(c.Update(t.Context(), edited))
		got := waitForUserData(t, c, machineAPI, authorized)
		if got.UID != first.UID || got.Labels["team"] != "windows" {
			t.Errorf("it is %+v", got.ObjectMeta)
		}
	})
	t.Run("another key is put into the same Secret", func(t *testing.T) {
		content, authorized = privateKey(t)
		own.Data[sshkeysecret.SecretKey] = content
		must(c.Update(t.Context(), own))
		if got := waitForUserData(t, c, machineAPI, authorized); got.UID != first.UID {
			t.Error("it is another Secret")
		}
		waitForUserData(t, c, sshkeysecret.ClusterAPINamespace, authorized)
	})
	t.Run("one that was deleted is made again", func(t *testing.T) {
		must(c.Delete(t.Context(), first.DeepCopy()))
		if got := waitForUserData(t, c, machineAPI, authorized); got.UID == first.UID {
			t.Error("it was not deleted")
		}
	})
	t.Run("events tell of it", func(t *testing.T) {
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true,
			func(ctx context.Context) (bool, error) {
				var list corev1.EventList
				err := c.List(ctx, &list, client.InNamespace(namespace))
				seen := map[string]bool{}
				for _, e := range list.Items {
					seen[e.Reason] = e.InvolvedObject.Name == sshkeysecret.SecretName
				}
				return seen["UserDataCreated"] && seen["UserDataRestored"] && seen["UserDataUpdated"], err
			})
		if err != nil {
			t.Error(err)
		}
	})
}
