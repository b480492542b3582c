// A device plugin that offers chips of this machine, or shares of them by NVIDIA MPS, as one extended resource.
//
// It is made for machines without the vendor's plugin, which needs the container toolkit. Device nodes and the driver's
// folder are handed to the container as they are on the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	every   = time.Second
	timeout = 10 * time.Second
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	resource  string
	chips     map[string][]string // device nodes of each device, by its ID
	shared    []string            // device nodes that each container gets
	mounts    []*api.Mount
	variables map[string]string
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "extended resource that pods request")
	chips := flag.String("chips", "", "device nodes of the chips, separated by commas")
	shared := flag.String("shared", "", "device nodes that each container gets beside its chips")
	mounts := flag.String("mounts", "", "folders of the machine as SOURCE:TARGET[:ro], separated by commas")
	variables := flag.String("variables", "", "environment of the container as NAME=VALUE, separated by commas")
	folder := flag.String("folder", api.DevicePluginPath, "the kubelet's folder of device plugins")
	flag.Parse()
	served := &plugin{resource: *resource, shared: list(*shared), chips: map[string][]string{}, variables: map[string]string{}}
	for number, node := range list(*chips) {
		served.chips[fmt.Sprintf("%s-%d", filepath.Base(node), number)] = []string{node}
	}
	for _, one := range list(*mounts) {
		parts := strings.Split(one, ":")
		if len(parts) < 2 {
			log.Fatalf("-mounts: %q is not SOURCE:TARGET", one)
		}
		served.mounts = append(served.mounts, &api.Mount{HostPath: parts[0], ContainerPath: parts[1], ReadOnly: len(parts) > 2})
	}
	for _, one := range list(*variables) {
		name, value, _ := strings.Cut(one, "=")
		served.variables[name] = value
	}
	for { // a kubelet that starts removes every socket in its folder, and wants to be registered with again
		if err := served.serve(*folder); err != nil {
			log.Print(err)
		}
		time.Sleep(every)
	}
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
}

// serve registers with the kubelet and returns when its socket is gone.
func (p *plugin) serve(folder string) error {
	name := "rightpool-" + strings.NewReplacer("/", "_", ".", "_").Replace(p.resource) + ".sock"
	path := filepath.Join(folder, name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	if err := p.register(filepath.Join(folder, filepath.Base(api.KubeletSocket)), name); err != nil {
		return err
	}
	log.Printf("registered %s with %d devices", p.resource, len(p.chips))
	for {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
		time.Sleep(every)
	}
}

func (p *plugin) register(kubelet, endpoint string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	bounded, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(bounded, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: p.resource, Options: &api.DevicePluginOptions{},
	})
	return err
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	var devices []*api.Device
	for identity := range p.chips {
		devices = append(devices, &api.Device{ID: identity, Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		given := &api.ContainerAllocateResponse{Mounts: p.mounts, Envs: p.variables}
		nodes := append([]string{}, p.shared...)
		for _, identity := range container.DevicesIds {
			nodes = append(nodes, p.chips[identity]...)
		}
		for _, node := range nodes {
			given.Devices = append(given.Devices, &api.DeviceSpec{ContainerPath: node, HostPath: node, Permissions: "rw"})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}
